module tenant

go 1.25
