"""The Spark half of an export, and the file formats that both engines write."""
