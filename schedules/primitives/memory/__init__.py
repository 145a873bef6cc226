"""Steps on storage: planning where tensors live."""
