"""The pages, one module each; `console.site` lists them."""
