"""What makes and keeps a run, of one model or of many: loop, recorder, record, directory, checkpoints, codec."""
