"""Who may do what: a policy file as a value, compiled to Cedar, and the gate that every call passes."""
