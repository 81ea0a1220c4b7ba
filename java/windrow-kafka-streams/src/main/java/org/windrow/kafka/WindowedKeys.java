package org.windrow.kafka;

import java.util.Arrays;
import org.apache.kafka.common.utils.Bytes;

/**
 * Keys of window and session stores: the number of a segment, a key of the program's, and behind it some bytes of
 * numbers. What follows the segment's number is Kafka's form, in which the changelog has the key.
 *
 * <p>Owns: the bounds of a range of such keys. Never does: know the numbers.
 */
final class WindowedKeys {
    private WindowedKeys() {}

    /** A key in its segment. */
    static byte[] inSegment(long segment, byte[] key) {
        return Numbers.concat(Segments.prefix(segment), key);
    }

    /** The program's key of one in a segment, with that number of bytes of numbers behind it. */
    static byte[] key(byte[] inSegment, int numbersBytes) {
        return Arrays.copyOfRange(inSegment, Segments.NUMBER_BYTES, inSegment.length - numbersBytes);
    }

    static boolean isOf(byte[] inSegment, byte[] key, int numbersBytes) {
        int end = inSegment.length - numbersBytes;
        return end - Segments.NUMBER_BYTES == key.length
                && Arrays.equals(inSegment, Segments.NUMBER_BYTES, end, key, 0, key.length);
    }

    /** Whether the program's key is from one to another one (null: no bound). */
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
     * The keys of a segment whose program's keys are from one to another one. A key that is a prefix of the last one may
     * come behind it, by the numbers that follow: so the end is the last key that any prefix of it can have.
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
