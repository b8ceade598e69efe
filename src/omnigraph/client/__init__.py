"""The other end of the server: requests, retries, and errors raised again as what they were."""
