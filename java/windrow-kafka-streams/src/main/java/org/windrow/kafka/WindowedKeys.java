package org.windrow.kafka;

import java.util.Arrays;
import org.apache.kafka.common.utils.Bytes;

/**
 * Keys of window and session stores: the number of a segment, a key of the program, and some bytes of numbers. The part
 * after the segment's number is the form that Kafka's changelog has.
 *
 * <p>Owns: the bounds of a range of such keys. Never does: know the numbers.
 */
final class WindowedKeys {
    private WindowedKeys() {}

    /** A key in its segment. */
    static byte[] inSegment(long segment, byte[] key) {
        return Numbers.concat(Segments.prefix(segment), key);
    }

    /** The program's key in a key of a segment that ends with that number of bytes of numbers. */
    static byte[] key(byte[] inSegment, int numbersBytes) {
        return Arrays.copyOfRange(inSegment, Segments.NUMBER_BYTES, inSegment.length - numbersBytes);
    }

    static boolean isOf(byte[] inSegment, byte[] key, int numbersBytes) {
        int end = inSegment.length - numbersBytes;
        return end - Segments.NUMBER_BYTES == key.length
                && Arrays.equals(inSegment, Segments.NUMBER_BYTES, end, key, 0, key.length);
    }

    /** Whether the program's key is in a range, both ends included (null: no bound). */
    static boolean isBetween(byte[] inSegment, Bytes from, Bytes to, int numbersBytes) {
        int begin = Segments.NUMBER_BYTES;
        int end = inSegment.length - numbersBytes;
        if (end < begin) {
            return false;
        }
        return (from == null || Arrays.compareUnsigned(from.get(), 0, from.get().length, inSegment, begin, end) <= 0)
                && (to == null || Arrays.compareUnsigned(inSegment, begin, end, to.get(), 0, to.get().length) <= 0);
    }

    /**
     * The keys of a segment whose program's keys are in a range. A key that is a prefix of the range's last one may
     * come after it, by the numbers that follow: so the end is the last key that any prefix of it can have.
     */
    static Segments.Range range(long segment, Bytes from, Bytes to, int numbersBytes) {
        byte[] begin = from == null ? Segments.prefix(segment) : inSegment(segment, from.get());
        if (to == null) {
            return new Segments.Range(begin, Segments.prefix(segment + 1));
        }
        byte[] last = null;
        for (int length = 0; length <= to.get().length; length++) {
            byte[] end = Arrays.copyOf(to.get(), length + numbersBytes);
            Arrays.fill(end, length, end.length, (byte) 0xff);
            if (last == null || Arrays.compareUnsigned(end, last) > 0) {
                last = end;
            }
        }
        return new Segments.Range(begin, Numbers.after(inSegment(segment, last)));
    }
}
