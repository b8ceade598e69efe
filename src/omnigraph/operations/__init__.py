"""One file per verb, each reading as the protocol it carries out."""
