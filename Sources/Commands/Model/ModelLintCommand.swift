import ArgumentParser
import Lazaret
import Migration
import SwiftModelSources

/// `lazaret model lint`: what in a model's versions would hurt the people who have stores of them.
struct ModelLintCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lint",
    abstract: "Checks a model's versions for changes that lose data or break rules.",
    usage: "lazaret model lint <model> [--lock <file>] [--cloudkit] [<options>]",
    discussion: """
      Names what each step from version to version would lose, what depends on the data, what cannot be migrated, \
      and renames without a renaming identifier. With a lock file, released versions that were edited afterwards are \
      named, and steps between released versions are left out. A lock file that is not there yet is written.

      EXIT CODES
        0   nothing found
        1   failed
        2   something was found; the output says what
        3   the model is out of reach
        64  the command line was wrong
      """)

  @OptionGroup var options: ModelOptions

  @Flag(help: "Write the lock file anew, with the versions as they are, after the check.")
  var writeLock = false

  @Flag(
    name: .customLong("cloudkit"), help: "Check the rules of CloudKit too: what it takes, and additive changes only.")
  var cloudKit = false

  @Flag(help: "Check steps between released versions too.")
  var all = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if writeLock, options.versionOrder.lock == nil { throw ValidationError("Give --lock with --write-lock.") }
  }

  func run() throws {
    try report(json: output.json) {
      let lock = options.versionOrder.lock
      let loaded = try options.versionOrder.loadUnlocked(
        options.model.path, unreadableVersions: .report, includingIncomplete: true)
      // A version that lacks something for being unresolved would seem to lose it.
      let bundle = try loaded.isComplete ? loaded.bundle : loaded.completeBundle()
      let known = try lock.flatMap { try ModelLock.read($0.path) }
      let lint = ModelLint(
        bundle, lock: known,
        options: ModelLint.Options(checksCloudKit: cloudKit, checksReleasedSteps: all)
      ).adding(loaded.sources?.findings.map { LintFinding($0, current: bundle.current.name) } ?? [])
      var text = output.json ? JSONText.pretty(LintJSON(lint)) : LintListing(lint).text
      // Hashes that cannot be told are not locked.
      if let lock, writeLock || known == nil, loaded.isComplete {
        try ModelLock(bundle, after: known).write(to: lock.path)
        if !output.json {
          text += "wrote the hashes of \(counted(Int64(bundle.versions.count), "version")) to \(quoted(lock.path))\n"
        }
      }
      Terminal.standardOutput.write(text)
      guard lint.findings.isEmpty else { throw ExitStatus.doubtful }
    }
  }
}

extension LintFinding {
  /// What Swift sources leave open, as a finding about the model.
  fileprivate init(_ finding: SourceFinding, current: String) {
    self.init(
      finding.severity == .error ? .unresolvedSource : .uncertainSource, in: finding.versionName ?? current,
      entity: finding.entityName, property: finding.propertyName, detail: finding.detail, hint: finding.hint)
    file = finding.place?.file
    line = finding.place?.line
  }
}
