import Backup
import Foundation
import GRDB
import Platform
import SystemPackage
import TestSupport
import Testing
import Zstandard

/// The backups in `Backups/`, which earlier versions made.
@Suite("Backups of every version are restored")
struct ReleasedBackupTests {
  private static let root = RealMaterial.projectRoot.appending("Backups")

  init() { ZstandardSupport.give(ZstandardLibrary()) }

  private static func versions() throws -> [FilePath] {
    try FileSystem().entries(of: root).map { root.appending($0) }.filter {
      try FileSystem().status(of: $0)?.kind == .directory
    }
  }

  @Test func eachRestoresToItsRows() throws {
    let versions = try Self.versions()
    #expect(!versions.isEmpty)
    for version in versions {
      let bytes = try FileSystem().contents(of: version.appending("rows.json"), limit: 1 << 20)
      let folders = try JSONDecoder().decode([String: [String: [Int]]].self, from: Data(bytes))
      let key = try FileSystem().contents(of: version.appending("key.txt"), limit: 1 << 12)
      let identities = try AgeIdentity.identities(in: String(decoding: key, as: UTF8.self))
      for (name, expected) in folders {
        let copy = try TemporaryFolder()
        let source = version.appending(FilePath.Component(name) ?? "plain")
        for file in try FileSystem().entries(of: source) {
          try copy.write(try FileSystem().contents(of: source.appending(file), limit: 1 << 24), to: file.string)
        }
        let place = FolderPlace(copy.path).unlocked(with: identities)
        let catalog = try BackupCatalog(of: place)
        #expect(Set(catalog.backups.map(\.id.description)) == Set(expected.keys), "\(source)")
        for backup in catalog.backups {
          let target = copy.appending("\(backup.id).sqlite")
          _ = try BackupRestorer(of: place).restore(backup.id, to: target)
          try Self.check(target, rows: expected[backup.id.description] ?? [])
        }
      }
    }
  }

  private static func check(_ store: FilePath, rows: [Int]) throws {
    let queue = try DatabaseQueue(path: store.string)
    try queue.read { db in
      #expect(try String.fetchOne(db, sql: "PRAGMA integrity_check") == "ok")
      let sql = "SELECT (SELECT count(*) FROM car), (SELECT count(*) FROM owner)"
      let counts = try #require(try Row.fetchOne(db, sql: sql))
      #expect([counts[0], counts[1]] == rows, "\(store)")
    }
    try queue.close()
  }
}
