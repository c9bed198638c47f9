import Foundation
import Platform
import SystemPackage
import TestSupport

/// What restic decided about random histories.
struct ResticRecording: Codable {
  struct Snapshot: Codable {
    var date: String
    var tags: [String]
  }

  struct Case: Codable {
    var arguments: [String]

    /// The snapshots of the history, as places in `snapshots`.
    var members: [Int]

    /// The ones that restic keeps, and why.
    var kept: [Kept]
  }

  struct Kept: Codable, Hashable {
    var member: Int
    var reasons: [String]
  }

  var restic: String
  var seed: UInt64
  var snapshots: [Snapshot]
  var cases: [Case]

  static let file = RealMaterial.projectRoot.appending("Tests/BackupTests/Recorded/restic-retention.json")

  /// The one that was recorded.
  static func recorded() throws -> ResticRecording {
    try JSONDecoder().decode(
      ResticRecording.self, from: Data(try FileSystem().contents(of: file, limit: 1 << 24)))
  }

  /// Asks the restic of this machine.
  ///
  /// One repository has all snapshots; each history is marked with a tag of its own.
  static func asking(seed: UInt64, cases count: Int) throws -> ResticRecording {
    let folder = try TemporaryFolder()
    let repository = folder.appending("repository").string
    func restic(_ arguments: [String], input: String = "") throws -> String {
      let result = try ChildProcess.run(
        "env",
        ["TZ=UTC", "restic", "--no-cache", "--password-command", "echo secret", "-r", repository] + arguments,
        input: input)
      guard result.status == 0 else { throw ResticFailure(words: result.errors) }
      return result.output
    }
    var history = RetentionHistory(seed: seed)
    let snapshots = history.pool(320).map { Snapshot(date: $0.rfc3339, tags: history.tags()) }
    let members = (0..<count).map { _ in history.members(of: snapshots.count) }
    _ = try restic(["init"])
    for (place, snapshot) in snapshots.enumerated() {
      let marks = members.indices.filter { members[$0].contains(place) }.map { "h\($0)" }
      let time = snapshot.date.replacing("T", with: " ").replacing("Z", with: "")
      _ = try restic(
        ["backup", "--quiet", "--stdin", "--time", time] + (snapshot.tags + marks).flatMap { ["--tag", $0] },
        input: "x")
    }
    let places = Dictionary(uniqueKeysWithValues: snapshots.enumerated().map { ($1.date, $0) })
    var cases: [Case] = []
    for number in members.indices {
      let arguments = history.arguments()
      let output = try restic(
        ["forget", "--dry-run", "--json", "--group-by", "", "--tag", "h\(number)"] + arguments)
      let groups = try JSONDecoder().decode([Group].self, from: Data(output.utf8))
      let reasons = groups.flatMap { $0.reasons ?? [] }
      let kept = reasons.map { Kept(member: places[$0.snapshot.time] ?? -1, reasons: $0.matches) }
      cases.append(Case(arguments: arguments, members: members[number], kept: kept))
    }
    let version = try restic(["version"]).split(separator: " ").prefix(2).joined(separator: " ")
    return ResticRecording(restic: version, seed: seed, snapshots: snapshots, cases: cases)
  }

  func write() throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // One case on each line, so that a change can be read.
    let text = String(decoding: try encoder.encode(self), as: UTF8.self)
      .replacing("},{\"arguments\"", with: "},\n{\"arguments\"").replacing("},{\"date\"", with: "},\n{\"date\"")
    try FileSystem().writeAtomically(Array("\(text)\n".utf8), to: Self.file, replacing: true)
  }

  private struct Group: Decodable {
    var reasons: [Reason]?
  }

  private struct Reason: Decodable {
    struct Snapshot: Decodable { var time: String }
    var snapshot: Snapshot
    var matches: [String]
  }
}

struct ResticFailure: Error {
  var words: String
}
