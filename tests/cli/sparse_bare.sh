# COO and CSR documents without a version and under any name are files of tensors for every command.
cp "$GOLDEN"/descriptor/specification/coo.json m.coo
cp "$GOLDEN"/descriptor/specification/csr.json m.txt
t ls m.coo m.txt
t show m.txt m.txt
t verify m.coo m.txt
t stats m.coo
t check m.coo m.txt
t describe m.txt m.txt
t convert -q m.coo a.zt --rename m.coo=m
t convert -q m.txt b.zt --form coo --rename m.txt=m
t diff a.zt b.zt
t convert -q m.coo c.json
t diff m.coo c.json
t meta m.coo
t compare-types m.txt --types mxfp4
t export-c m.txt --plan
printf '%s' '{"values": [1.5, 2.5], "column_indices": [1, 0], "row_pointers": [0, 1, 2], "shape": [2, 2], "note": "", "format": "CSR"}' >last
t show last last
{ printf '{"shape": [2, 2000], "values": ['; yes 1.5, | head -n 1999 | tr -d '\n'; printf '1.5], "row_pointers": [0, 2000, 2000], "column_indices": ['
  seq -s , 0 1999 | tr -d '\n'; printf '], "format": "CSR"}'; } >long
t ls long
printf '%s' '{"colour": "red", "values": [1]}' >other
t ls other
