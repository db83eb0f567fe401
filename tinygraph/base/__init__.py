"""What every room may use, and which knows no tensor: errors, checks, dtypes, files, pages."""
