"""`python -m benchmarks.machine_code`: see page.py."""

from benchmarks.machine_code.page import main

main()
