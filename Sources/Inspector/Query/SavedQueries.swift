import Foundation
import HTTPServer
import Platform
import SystemPackage

struct SavedQuery: Sendable, Hashable, Codable {
  var name: String

  var sql: String

  /// The time of saving in RFC 3339.
  var saved: String
}

/// A home's saved queries, in one file readable by its owner only, since a query may name the sought data.
struct SavedQueries: Sendable {
  private struct Content: Codable {
    var format = 1
    var queries: [SavedQuery] = []
  }

  static let longestName = 100

  static let most = 200

  private let folder: FilePath
  private let surroundings: Surroundings
  private var file: FilePath { folder.appending("queries.json") }
  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// The queries of a home; creates no file yet.
  init(home: FilePath, surroundings: Surroundings) {
    folder = home.appending(".lazaret-queries")
    self.surroundings = surroundings
  }

  /// - Throws: `FileError`; ``Refusal`` if the file isn't of this version.
  func all() throws -> [SavedQuery] {
    guard try fileSystem.status(of: file) != nil else { return [] }
    let bytes = try fileSystem.contents(of: file, limit: 16 << 20)
    let content: Content
    do {
      content = try JSONDecoder().decode(Content.self, from: Data(bytes))
    } catch {
      throw unreadable
    }
    guard content.format == 1 else { throw unreadable }
    return content.queries.sorted { $0.name < $1.name }
  }

  private var unreadable: Refusal {
    Refusal(.conflict, "the file of saved queries in the home cannot be read; move it away to begin a new one")
  }

  /// Saves a query, replacing one of the same name.
  func save(_ name: String, _ sql: String) throws {
    let name = name.trimmingCharacters(in: .whitespacesAndNewlines)
    guard !name.isEmpty, name.count <= Self.longestName else {
      throw Refusal(.badRequest, "a name has from 1 to \(Self.longestName) characters")
    }
    guard !sql.trimmingCharacters(in: .whitespacesAndNewlines).isEmpty else {
      throw Refusal(.badRequest, "there is no query to save")
    }
    let sql = try StoreQuery(sql).sql
    try change { queries in
      queries.removeAll { $0.name == name }
      guard queries.count < Self.most else {
        throw Refusal(.conflict, "\(Self.most) queries are saved already; delete one first")
      }
      queries.append(SavedQuery(name: name, sql: sql, saved: surroundings.now().rfc3339))
    }
  }

  func remove(_ name: String) throws {
    try change { queries in
      guard queries.contains(where: { $0.name == name }) else {
        throw Refusal(.notFound, "no query of that name is saved")
      }
      queries.removeAll { $0.name == name }
    }
  }

  private func change(_ change: (inout [SavedQuery]) throws -> Void) throws {
    try fileSystem.makeDirectory(folder)
    let lock = try FolderLock(folder, in: fileSystem)
    var content = Content(queries: try all())
    try change(&content.queries)
    let bytes = try JSON.bytes(of: content, to: "save the query", at: file)
    try fileSystem.writeAtomically(bytes, to: file, replacing: true)
    lock.release()
  }
}
