"""What brings tables back: `rollback` to a commit that is named, `repair` to one that is whole, or by building anew."""
