"""Cases as data: one JSON file for each public function, docs/cases.md describes them.

schema.py     what a file may contain, and errors that name file, case and field
oracles.py    values and gradients from the naive loops of tests/reference
make.py       fills in what the files leave to the reference:  python -m tests.cases.make
writing.py    how a file is laid out
run.py        one case on one device in one dtype, compared with what the file says
test_*.py     tests of these, and whether the cases find mistakes planted into the ops
"""
