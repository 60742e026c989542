"""What was set differently: devices, precision, modules, settings of optimizers (AL1xx)."""
