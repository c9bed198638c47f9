import Backup
import StoreFiles
import Testing

@Suite("Names of backups")
struct BackupIdentifierTests {
  @Test("A name is a moment and a number, and reads back as what it was")
  func names() throws {
    let moment = Timestamp(secondsSince1970: 1_795_256_072, nanoseconds: 5)
    let first = BackupIdentifier(date: moment)
    let second = BackupIdentifier(date: moment, number: 2)
    #expect(first.description == "2026-11-21-10-14-32")
    #expect(second.description == "2026-11-21-10-14-32-2")
    #expect(first < second)
    #expect(BackupIdentifier(second.description) == second)
  }

  @Test(
    "What is no name is none",
    arguments: [
      "", "2026-11-21", "2026-11-21-10-14-32-", "2026-11-21-10-14-32-1", "2026-11-21-10-14-32-02",
      "2026-02-30-10-14-32",
      "2026-11-21-10-14-32-x", "../../2026-11-21", "2026-11-21-10-14-32-99999999999",
    ])
  func noNames(text: String) {
    #expect(BackupIdentifier(text) == nil)
  }
}
