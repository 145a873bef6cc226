"""Primitives that change the layout or the memory scope of buffers."""
