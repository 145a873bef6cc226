"""Graph-level IR: functions over whole tensors with symbolic shapes (Relax §3)."""
