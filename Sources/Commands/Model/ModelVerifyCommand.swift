import ArgumentParser
import LazaretTesting
import Platform

struct ModelVerifyCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "verify",
    abstract: "Migrates generated stores of every earlier version to the current one, and checks what comes out.",
    usage: "lazaret model verify <model> [--from <version>] [--rows <n>] [--junit <file>] [<options>]",
    discussion: """
      For each earlier version, stores are generated with several kinds of records: none, usual ones, extreme values, \
      nothing wherever the model allows that, the same values everywhere. Each step that stores take is checked once, \
      on stores of the version it starts from, and every record is held against what the mapping implies. Where a later \
      step depends on what an earlier one makes, stores are taken all the way besides. Versions that are known to be newer \
      than the current one are named and not checked. The same seed makes the same stores.
      """, examples: "lazaret model verify App.xcdatamodeld --junit report.xml",
    exitCodes: ExitStatus.codes(
      done: "every version migrates, and nothing is lost",
      failed: "failed: a version or usual records do not migrate, or come out wrong",
      doubtful: "something would be lost, stores with certain records do not migrate, or a version was not checked",
      unavailable: "the model or the folder is out of reach: locked, forbidden, no space"))

  @OptionGroup var options: ModelOptions

  @Option(help: .text("The only version to start from; every earlier one if not given.", "version"))
  var from: String?

  @Option(help: .text("What the generated records follow from.", "n")) var seed: UInt64 = 1

  @Option(help: .text("The number of records of each entity.", "n")) var rows = 20

  @Flag(help: "Migrate each version in one step, too.") var direct = false

  @Flag(help: "Losses are no failure: the exit code is 0 where nothing else is wrong.")
  var allowLosses = false

  @Flag(help: "Neither are stores that fail only because of certain records.")
  var allowConditions = false

  @Option(
    help: .text("The number of stores to work on at once; as many as the machine has processors if not given.", "n"))
  var jobs: Int?

  @Option(help: .text("Write the results as JUnit's XML, for build servers: a case for each step.", "file"))
  var junit: PathArgument?

  @Option(help: .text("Make the stores in this folder and keep them.", "dir"))
  var keep: PathArgument?

  @OptionGroup var mappings: MappingOptions
  @OptionGroup var annotations: AnnotationOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    try junit?.requirePlace()
    if annotations.annotate != nil, output.json { throw ValidationError("Give --annotate or --json, not both.") }
    guard (0...10_000_000).contains(rows) else { throw ValidationError("Give --rows from 0 to 10000000.") }
    if let jobs, !(1...256).contains(jobs) { throw ValidationError("Give --jobs from 1 to 256.") }
  }

  func perform() throws {
    let loaded = try options.loaded(json: output.json)
    let bundle = loaded.bundle
    let line = ProgressLine()
    var options = MigrationVerifier.Options()
    options.mappings = try mappings.load(for: bundle)
    options.version = from
    options.seed = seed
    options.records = rows
    options.checksDirectSteps = direct
    options.folder = keep?.path
    if let jobs { options.threads = jobs }
    Interruption.listen()
    options.isCancelled = { Interruption.isRequested }
    options.progress = { _, _, number, count in
      // Constant words, so that the remaining time can be estimated.
      line.show("Migrating generated stores", Int64(number), of: Int64(count), .things("stores"))
      return !Interruption.isRequested
    }
    options.ended = { result, number, count in
      guard !TextStyle.current.isQuiet else { return }
      Terminal.standardError.writeContent("\(number)/\(count)  \(result)\n")
    }
    let found = try MigrationVerifier(bundle, options: options).run()
    line.clear()
    if let junit {
      try FileSystem().writeAtomically(
        Array(JUnitReport(found, allowing: allowed).xml.utf8), to: junit.path, replacing: true,
        permissions: .init(rawValue: 0o644))
    }
    try output.print(found, VerificationListing(found).text)
    if let style = annotations.annotate {
      for annotation in Annotation.all(of: found, allowing: allowed, ModelPlaces(bundle, sources: loaded.sources)) {
        Terminal.standardOutput.writeContent(annotation.text(style) + "\n")
      }
    }
    switch found.outcome {
    case .fine:
      // Versions outside the given order were excluded deliberately.
      let isChecked = found.unreadableVersions.isEmpty && !found.uncheckedVersions.contains { $0.reason == .newer }
      if !isChecked { throw ExitStatus.doubtful }
    case .lossy: if !allowLosses { throw ExitStatus.doubtful }
    case .conditional:
      let isLossy = found.versions.contains { !$0.losses.isEmpty } || found.steps.contains { !$0.losses.isEmpty }
      if !allowConditions || isLossy && !allowLosses { throw ExitStatus.doubtful }
    case .failed: throw ExitStatus.failed
    }
  }

  private var allowed: Set<VerificationReport.Outcome> {
    var allowed: Set<VerificationReport.Outcome> = []
    if allowLosses { allowed.insert(.lossy) }
    if allowConditions { allowed.insert(.conditional) }
    return allowed
  }
}

extension Annotation {
  fileprivate static func all(
    of report: VerificationReport, allowing allowed: Set<VerificationReport.Outcome>, _ places: ModelPlaces
  ) -> [Annotation] {
    var result: [Annotation] = []
    func add(
      _ isError: Bool, _ step: String, _ target: String, _ entity: String?, _ property: String?, _ message: String
    ) {
      let place = places.place(places.version(of: step) ?? target, entity, property)
      let annotation = Annotation(isError: isError, file: place?.file, line: place?.line, title: step, message: message)
      // A step and a whole path may repeat a finding.
      if !result.contains(annotation) { result.append(annotation) }
    }
    func add(_ name: String, _ target: String, _ losses: [VerificationReport.Loss], _ cases: [VerificationReport.Case])
    {
      for found in cases where found.outcome > .lossy && !allowed.contains(found.outcome) {
        add(found.outcome == .failed, name, target, nil, nil, VerificationListing.sentence(for: found))
      }
      guard !allowed.contains(.lossy) else { return }
      for loss in losses { add(false, loss.step, target, loss.entity, loss.property, loss.text) }
    }
    for step in report.steps {
      for refusal in step.refusals {
        add(true, step.step, step.to, refusal.entity, refusal.property, "\(refusal.text). \(refusal.wayRound)")
      }
      add(step.step, step.to, step.losses, step.cases)
    }
    for version in report.versions where version.wholeWay {
      add("\(version.from) → \(version.to)", version.to, version.losses, version.cases)
    }
    return result
  }
}
