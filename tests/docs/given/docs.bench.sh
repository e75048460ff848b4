for name in BENCH BEFORE AFTER; do
    mmbu bench --image 128x128 --model m --base-url http://localhost:8000/v1 --name "$name" \
        --concurrency 2 --requests-per-stage 12 --warmup 2
done
