"""What a lake of a given size would cost: prices measured on this machine (`measure`), and a simulation with them."""
