"""From records to pictures and tables. Reads records only. No torch."""
