import HTTPServer
import Inspector
import Platform
import Testing

@Suite("Words of the pages")
struct WordsTests {
  @Test(
    "Of the first moment of a month, which may stand for any of it, only the month is shown",
    arguments: [
      ("2026-11-01T00:00:00Z", "Nov 2026"), ("2026-11-01T00:00:01Z", "1 Nov 2026, 00:00 UTC"),
      ("2026-11-02T00:00:00Z", "2 Nov 2026, 00:00 UTC"), ("2026-10-31T23:59:59Z", "31 Oct 2026, 23:59 UTC"),
    ])
  func months(text: String, shown: String) throws {
    let time = try #require(Timestamp(text))
    #expect(Words.date(time) == shown)
    let soon = Timestamp(secondsSince1970: time.secondsSince1970 + 600)
    #expect(Words.time(time, now: soon).text.contains("ago") == (shown.count > 8))
  }
}
