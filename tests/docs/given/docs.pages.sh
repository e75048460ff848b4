for name in base tuned RUN; do
    mmbu run mmbu-public --model "$name-vlm" --name "$name" --limit 12
done
cp mmbu.sqlite other.sqlite
printf 'base,adapted,training_size\nbase,tuned,500000\n' > pairs.csv
