# What the reader has by then: two runs, a panel's file, human labels, pairs, a store of another machine, a drawn split.
#: ROW=demo-count-0000
mkdir demo && ln -s "$MMBU_DATA" demo/data
mmbu run mmbu-public --model base-vlm --name BASE
mmbu run mmbu-public --model gpt-4o-mini --name RUN --store other.sqlite
cp other.sqlite mmbu-copy.sqlite && mmbu store merge mmbu-copy.sqlite
cat > panel.toml <<'END'
[[panel]]
name = "second"
model = "gpt-4.1-mini"
endpoint = "openai"
END
mmbu export BASE --out given.csv
python -c "
import csv
rows = [row['row_id'] for row in csv.DictReader(open('given.csv'))]
csv.writer(open('labels.csv', 'w')).writerows([('row_id', 'label'), *((row, n % 2) for n, row in enumerate(rows))])
csv.writer(open('pairs.csv', 'w')).writerows([('base', 'adapted', 'training_size'), ('BASE', 'RUN', 500000)])"
