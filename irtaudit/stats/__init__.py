"""Ground floor: arrays in, arrays out. Knows no item response theory and imports nothing of irtaudit."""
