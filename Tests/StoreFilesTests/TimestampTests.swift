import Platform
import TestSupport
import Testing

struct TimestampTests {
  @Test(arguments: [
    (0, "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"), (1_795_255_872, "2026-11-21T10:11:12Z"),
    (-1, "1969-12-31T23:59:59Z"), (-62_167_219_200, "0000-01-01T00:00:00Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
  ])
  func writesAndReadsItsText(seconds: Int64, text: String) throws {
    #expect(Timestamp(secondsSince1970: seconds).rfc3339 == text)
    #expect(Timestamp(text) == Timestamp(secondsSince1970: seconds))
  }

  @Test func fileNamesAreTheTimeInUTC() throws {
    let time = Timestamp(secondsSince1970: 1_795_255_872)
    #expect(time.fileName == "2026-11-21-10-11-12")
    #expect(Timestamp("2026-11-21-10-11-12") == time)
  }

  @Test(arguments: [
    "", "2026-11-21", "2026-13-21-10-11-12", "2026-11-21-24-11-12", "2026-11-21-1a-11-12", "2026-11-21 10:11:12",
  ])
  func refusesOtherText(text: String) {
    #expect(Timestamp(text) == nil)
  }

  @Test func survivesAnyMoment() {
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<2000 {
      let seconds = Int64.random(in: -62_167_219_200...253_402_300_799, using: &generator)
      #expect(Timestamp(Timestamp(secondsSince1970: seconds).rfc3339)?.secondsSince1970 == seconds)
    }
    #expect(Timestamp(secondsSince1970: .max).rfc3339 == "9999-12-31T23:59:59Z")
    #expect(Timestamp(secondsSince1970: .min).rfc3339 == "0000-01-01T00:00:00Z")
  }
}
