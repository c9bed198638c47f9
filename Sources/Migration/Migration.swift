// The mapping models of migrations.
