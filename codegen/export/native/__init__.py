"""C sources, headers and loaders of exported models."""
