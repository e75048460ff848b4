#: …=mmbu-public --model MODEL --name night
mmbu run mmbu-public --model MODEL --name RUN
mmbu export RUN --out given.csv
python -c "
import csv
rows = [row['row_id'] for row in csv.DictReader(open('given.csv'))]
csv.writer(open('labels.csv', 'w')).writerows([('row_id', 'label'), *((row, n % 2) for n, row in enumerate(rows))])"
