"""Many models of one kind, trained as one: a leading model axis on everything."""
