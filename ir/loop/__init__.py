"""Loop-level IR: functions of loops and blocks over buffers (TensorIR §3)."""
