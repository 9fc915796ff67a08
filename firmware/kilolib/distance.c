/* Distance from the amplitudes of a message.
 *
 * The tables hold the ADC count at gaps of 0, 5, ... 65 mm between two robots. High gain saturates
 * near contact, low gain is coarse far away: below 700 counts only high gain is used, above 900
 * only low gain, and a weighted mean in between.
 */
#include "private.h"

#define STEP_MM 5
#define BODY_MM 33
#define NOT_KNOWN 255
#define BEYOND_LOW_GAIN_MM 90
#define HIGH_GAIN_LIMIT 900
#define LOW_GAIN_LIMIT 700

uint16_t kilo_low_gain_table[DISTANCE_POINTS];
uint16_t kilo_high_gain_table[DISTANCE_POINTS];

/* First point whose count is below the reading; the last one if there is none. */
static uint8_t first_below(const uint16_t *table, uint16_t reading)
{
    uint8_t i = 0;
    while (i < DISTANCE_POINTS - 1 && reading <= table[i]) {
        i++;
    }
    return i;
}

/* Gap in mm on the straight line through points i-1 and i, truncated; behind a table that rises at
 * its end the line goes the other way. A flat piece (an empty EEPROM) has no answer. */
static uint8_t interpolate(const uint16_t *table, uint8_t i, uint16_t reading)
{
    int32_t before = table[i - 1];
    int32_t slope = before - table[i];
    if (slope == 0) {
        return NOT_KNOWN;
    }
    return STEP_MM * ((i - 1) * slope + before - reading) / slope;
}

static uint8_t gap_from_high_gain(uint16_t reading)
{
    uint8_t i = first_below(kilo_high_gain_table, reading);
    return i == 0 ? 0 : interpolate(kilo_high_gain_table, i, reading);
}

static uint8_t gap_from_low_gain(uint16_t reading)
{
    uint8_t i = first_below(kilo_low_gain_table, reading);
    if (i == 0) {
        return 0;
    }
    if (reading <= kilo_low_gain_table[i]) {
        return BEYOND_LOW_GAIN_MM;
    }
    return interpolate(kilo_low_gain_table, i, reading);
}

uint8_t estimate_distance(const distance_measurement_t *dist)
{
    uint16_t high = dist->high_gain;
    uint16_t low = dist->low_gain;
    uint8_t by_high = NOT_KNOWN;
    uint8_t by_low = NOT_KNOWN;

    if (high < HIGH_GAIN_LIMIT) {
        by_high = gap_from_high_gain(high);
    }
    if (high > LOW_GAIN_LIMIT) {
        by_low = gap_from_low_gain(low);
    }
    if (by_high == NOT_KNOWN) {
        return BODY_MM + by_low;
    }
    if (by_low == NOT_KNOWN) {
        return BODY_MM + by_high;
    }
    uint16_t weighted = by_high * (HIGH_GAIN_LIMIT - high) + by_low * (high - LOW_GAIN_LIMIT);
    return BODY_MM + weighted / (HIGH_GAIN_LIMIT - LOW_GAIN_LIMIT);
}
