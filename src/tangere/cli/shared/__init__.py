"""What commands share: options, files, tables, text."""
