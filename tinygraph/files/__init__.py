"""Files that hold arrays: what is saved, sealed by its hash, and read again."""
