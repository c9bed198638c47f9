import Backup
import Platform
import Testing

@Suite("Names of backups")
struct BackupIdentifierTests {
  @Test("A name is a moment and a number, and reads back as what it was")
  func names() throws {
    let moment = Timestamp(secondsSince1970: 1_795_256_072, nanoseconds: 5)
    let first = BackupIdentifier(date: moment)
    let second = BackupIdentifier(date: moment, number: 2)
    #expect(first.description == "b-2026-11-21-10-14-32")
    #expect(second.description == "b-2026-11-21-10-14-32-2")
    #expect(first < second)
    #expect(BackupIdentifier(second.description) == second)
  }

  @Test("Names that earlier versions gave read back as they are, and come in the order of their times")
  func earlierNames() throws {
    let names = [
      "2026-11-21-10-14-31", "b-2026-11-21-10-14-31", "2026-11-21-10-14-32", "2026-11-21-10-14-32-2",
      "b-2026-11-21-10-14-32", "b-2026-11-21-10-14-32-2", "2026-11-21-10-14-33",
    ]
    let identifiers = try names.map { try #require(BackupIdentifier($0)) }
    #expect(identifiers.map(\.description) == names)
    #expect(identifiers.shuffled().sorted() == identifiers)
    #expect(Set(identifiers).count == names.count)
    #expect(identifiers.map(\.isMarked) == names.map { $0.hasPrefix("b-") })
    #expect(identifiers[0].date == identifiers[1].date)
  }

  @Test(
    "What is no name is none",
    arguments: [
      "", "2026-11-21", "2026-11-21-10-14-32-", "2026-11-21-10-14-32-1", "2026-11-21-10-14-32-02",
      "2026-02-30-10-14-32",
      "2026-11-21-10-14-32-x", "../../2026-11-21", "2026-11-21-10-14-32-99999999999",
      "b-", "b-2026-11-21", "b-2026-11-21-10-14-32-1", "B-2026-11-21-10-14-32", "b2026-11-21-10-14-32",
      "b-b-2026-11-21-10-14-32", "q-2026-11-21-10-14-32", "b-2026-11-21-10-14-32-99999999999",
    ])
  func noNames(text: String) {
    #expect(BackupIdentifier(text) == nil)
  }
}
