# The four runs of the page, over fewer rows.
for name in base tuned more most; do
    mmbu run mmbu-public --model "$name-vlm" --name "$name" --limit 12
done
cat > pairs.csv <<'END'
base,adapted,training_size
base,tuned,500000
base,more,2000000
base,most,6000000
END
