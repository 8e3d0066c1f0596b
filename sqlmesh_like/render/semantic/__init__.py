"""What semantic models, metrics and saved queries read: `names` finds metrics and measures by name, `references` walks
the declarations of `project.semantic` and resolves each, with file, line and column where one names nothing."""
