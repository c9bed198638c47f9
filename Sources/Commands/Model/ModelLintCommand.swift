import ArgumentParser
import Lazaret
import Migration

/// `lazaret model lint`: what in a model's versions would hurt the people who have stores of them.
struct ModelLintCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lint",
    abstract: "Checks a model's versions for changes that lose data or break rules.",
    usage: "lazaret model lint <model> [--lock <file>] [--cloudkit] [--annotate <style>] [<options>]",
    discussion: """
      Names what each step from version to version would lose, what depends on the data, what cannot be migrated, \
      renames without a renaming identifier, and renames that no migration would carry out. With a lock file, released versions that were edited afterwards are \
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

  @OptionGroup var annotations: AnnotationOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if annotations.annotate != nil, output.json { throw ValidationError("Give --annotate or --json, not both.") }
    if writeLock, options.versionOrder.lock == nil { throw ValidationError("Give --lock with --write-lock.") }
  }

  func run() throws {
    try report(json: output.json) {
      let lock = options.versionOrder.lock
      let bundle = try options.versionOrder.loadUnlocked(options.model.path, unreadableVersions: .report)
      let known = try lock.flatMap { try ModelLock.read($0.path) }
      let lint = ModelLint(
        bundle, lock: known,
        options: ModelLint.Options(checksCloudKit: cloudKit, checksReleasedSteps: all))
      // Files and lines are for programs; people are told the version, the entity and the property.
      let located = lint.located(ModelPlaces(bundle).place)
      var text = output.json ? JSONText.pretty(LintJSON(located)) : LintListing(lint).text
      if let lock, writeLock || known == nil {
        try ModelLock(bundle, after: known).write(to: lock.path)
        if !output.json {
          text += "wrote the hashes of \(counted(Int64(bundle.versions.count), "version")) to \(quoted(lock.path))\n"
        }
      }
      if let style = annotations.annotate {
        text += located.findings.map { Annotation($0).text(style) + "\n" }.joined()
      }
      Terminal.standardOutput.write(text)
      guard lint.findings.isEmpty else { throw ExitStatus.doubtful }
    }
  }
}
