"""An e-mail: its fields, its MIME form, its templates."""
