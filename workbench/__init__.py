"""What a person sees: sessions, the widget, timing, and the command line."""
