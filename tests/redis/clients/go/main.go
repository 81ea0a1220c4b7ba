// go-redis against a Windrow server.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"

	"github.com/redis/go-redis/v9"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(got, wanted any) {
	if !reflect.DeepEqual(got, wanted) {
		panic(fmt.Sprintf("%v instead of %v", got, wanted))
	}
}

func main() {
	ctx := context.Background()
	r := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Getenv("WINDROW_PORT")})
	check(r.FlushAll(ctx).Err())
	check(r.Set(ctx, "apple", "red", 0).Err())
	equal(r.Get(ctx, "apple").Val(), "red")
	equal(r.Get(ctx, "none").Err(), redis.Nil)
	check(r.HSet(ctx, "h", "a", 1, "b", 2).Err())
	equal(r.HGetAll(ctx, "h").Val(), map[string]string{"a": "1", "b": "2"})
	check(r.RPush(ctx, "l", "x", "y").Err())
	equal(r.LRange(ctx, "l", 0, -1).Val(), []string{"x", "y"})
	check(r.SAdd(ctx, "s", "x").Err())
	check(r.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "a"}).Err())
	equal(r.ZRangeWithScores(ctx, "z", 0, -1).Val(), []redis.Z{{Score: 1.5, Member: "a"}})

	pipe := r.Pipeline()
	for n := 0; n < 1000; n++ {
		pipe.Incr(ctx, "sum")
	}
	_, err := pipe.Exec(ctx)
	check(err)
	equal(r.Get(ctx, "sum").Val(), "1000")

	var all sync.WaitGroup
	for client := 0; client < 4; client++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for done := 0; done < 50; {
				err := r.Watch(ctx, func(tx *redis.Tx) error {
					n, err := tx.Get(ctx, "n").Int()
					if err != nil && !errors.Is(err, redis.Nil) {
						return err
					}
					_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
						pipe.Set(ctx, "n", n+1, 0)
						return nil
					})
					return err
				}, "n")
				if err == nil {
					done++
				} else if !errors.Is(err, redis.TxFailedErr) {
					panic(err)
				}
			}
		}()
	}
	all.Wait()
	equal(r.Get(ctx, "n").Val(), "200")

	sub := r.Subscribe(ctx, "news")
	_, err = sub.Receive(ctx)
	check(err)
	check(r.Publish(ctx, "news", "hello").Err())
	message, err := sub.ReceiveMessage(ctx)
	check(err)
	equal(message.Payload, "hello")
}
