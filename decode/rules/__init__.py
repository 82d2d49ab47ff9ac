"""The commit rules, one file each."""
