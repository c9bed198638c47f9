import Platform
import SupportBundle
import Testing

struct RetryTests {
  @Test func pausesGrowFromASecondToFiveMinutesAndAreDrawnBelow() {
    let bounds = (1...12).map { RetrySchedule.bound(after: $0) }
    #expect(bounds.prefix(4) == [.seconds(1), .seconds(2), .seconds(4), .seconds(8)])
    #expect(bounds.last == .seconds(300))
    var one = RetrySchedule(seed: 5)
    var same = RetrySchedule(seed: 5)
    var other = RetrySchedule(seed: 6)
    let pauses = (1...12).map { one.pause(after: $0) }
    #expect(pauses == (1...12).map { same.pause(after: $0) })
    #expect(pauses != (1...12).map { other.pause(after: $0) })
    for (pause, bound) in zip(pauses, bounds) { #expect(pause >= .zero && pause <= bound) }
    // Drawn from the whole range, and not from its end.
    var many = RetrySchedule(seed: 1)
    let drawn = (0..<200).map { _ in many.pause(after: 9) / RetrySchedule.bound(after: 9) }
    #expect(drawn.contains { $0 < 0.1 } && drawn.contains { $0 > 0.9 })
    #expect(many.pause(after: 1, asked: .seconds(77)) == .seconds(77))
  }

  static let dates: [(String, String?)] = [
    ("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z"),
    ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z"),
    ("Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37Z"), ("Sat, 21 Nov 2026 23:59:60 GMT", "2026-11-22T00:00:00Z"),
    ("Sun, 06 Nov 1994 08:49:37 CET", nil), ("Sun, 06 Nov 1994 24:49:37 GMT", nil),
    ("Sun, 6 Foo 1994 08:49:37 GMT", nil),
    ("Sun, 06 Nov 1994 08:49 GMT", nil), ("", nil), ("soon", nil), ("Sun, 99 Nov 1994 08:49:37 GMT", nil),
    ("Sun, 06 Nov 1994 8:4999:37 GMT", nil), (String(repeating: "1 ", count: 50), nil),
  ]

  @Test(arguments: dates)
  func datesAreReadInAllThreeForms(text: String, expected: String?) {
    #expect(HTTPDate.parse(text)?.rfc3339 == expected)
  }

  @Test func datesComeBack() {
    for seconds in stride(from: Int64(0), to: 4_000_000_000, by: 98_765_431) {
      let date = Timestamp(secondsSince1970: seconds)
      #expect(HTTPDate.parse(HTTPDate.text(date)) == date)
    }
    #expect(HTTPDate.text(Timestamp(secondsSince1970: 784_111_777)) == "Sun, 06 Nov 1994 08:49:37 GMT")
  }

  @Test func whatAReceiverAsksForIsBounded() throws {
    let now = try #require(Timestamp("1994-11-06T08:49:00Z"))
    #expect(RetryAfter.parse("120", now: now) == .seconds(120))
    #expect(RetryAfter.parse(" 7 ", now: now) == .seconds(7))
    #expect(RetryAfter.parse("Sun, 06 Nov 1994 08:49:37 GMT", now: now) == .seconds(37))
    #expect(RetryAfter.parse("Sun, 06 Nov 1994 08:48:00 GMT", now: now) == .zero)
    #expect(RetryAfter.parse("Sun, 06 Nov 2994 08:48:00 GMT", now: now) == RetryAfter.limit)
    #expect(RetryAfter.parse("99999999999999999999999", now: now) == RetryAfter.limit)
    for text in ["", "-1", "1.5", "1 2", "later"] { #expect(RetryAfter.parse(text, now: now) == nil) }
  }
}
