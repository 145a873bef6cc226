"""Tables of rewrite rules, one module per class of terms."""
