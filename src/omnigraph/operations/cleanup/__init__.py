"""`cleanup`: what nothing needs any more goes; everything that anybody may still need stays."""
