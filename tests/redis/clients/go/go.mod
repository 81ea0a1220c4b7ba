module windrow/client

go 1.19

require github.com/redis/go-redis/v9 v9.0.5
