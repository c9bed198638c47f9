import PersistentStore
import SystemPackage
import TestSupport
import Testing

/// A store in a certain state, and what has to be said of it.
struct VerdictCase: Sendable, CustomTestStringConvertible {
  var name: String
  var verdict: Verdict
  var code: String
  var coreData: Int?
  var sqlite: Int?

  /// What the words must mention.
  var mentions: [String]

  /// The codes of notes that must be there.
  var notes: [String]

  /// The verdict of a look at every page, where it is another one.
  var full: (verdict: Verdict, code: String)?

  /// Whether counting the records meets the damage, which is followed up by a look at every page.
  var isMetByCounting: Bool
  var model: AppModel?
  var make: @Sendable () throws -> Specimen

  init(
    _ name: String, _ verdict: Verdict, _ code: String, coreData: Int? = nil, sqlite: Int? = nil,
    mentions: [String] = [], notes: [String] = [], full: (verdict: Verdict, code: String)? = nil,
    isMetByCounting: Bool = false, model: AppModel? = Models.bundle(), _ make: @escaping @Sendable () throws -> Specimen
  ) {
    self.name = name
    self.verdict = verdict
    self.code = code
    self.coreData = coreData
    self.sqlite = sqlite
    self.mentions = mentions
    self.notes = notes
    self.full = full
    self.isMetByCounting = isMetByCounting
    self.model = model
    self.make = make
  }

  var testDescription: String { name }

  /// Examines it quickly and fully, and checks all that must hold of every verdict.
  func check() throws {
    let folder = try TemporaryFolder()
    let path = try make().place(in: folder)
    let before = try FolderContents(of: folder.path)
    for depth in Examination.Depth.allCases {
      for counting in [true, false] {
        let examination = try examiner().look(path, model, depth, counting: counting)
        let reason = examination.reason
        let own = (verdict: verdict, code: code)
        let expected = depth == .full || counting && isMetByCounting ? full ?? own : own
        #expect(examination.verdict == expected.verdict, "\(depth): \(reason.code) \(reason.words)")
        #expect(reason.code == expected.code, "\(depth): \(reason.words)")
        if full == nil {
          #expect(reason.coreDataCode == coreData)
          #expect(reason.sqliteCode == sqlite)
          for word in mentions { #expect(reason.words.contains(word), "\(reason.words)") }
        }
        for note in notes {
          #expect(examination.health.notes.contains { $0.code == note }, "\(examination.health.notes.map(\.code))")
        }
        Self.checkWords(examination)
      }
    }
    #expect(try FolderContents(of: folder.path) == before)
  }

  /// What must hold of the words of every examination.
  static func checkWords(_ examination: Examination, secret: String = Specimen.secret) {
    let reason = examination.reason
    #expect(reason.words.hasSuffix(".") && !reason.words.hasSuffix("..") && reason.words.count < 600)
    #expect(reason.hint.hasSuffix(".") && reason.hint.count > 10)
    #expect(!reason.code.isEmpty && reason.code.allSatisfy { $0.isLowercase || $0.isNumber || $0 == "-" })
    for text in [reason.words, reason.hint] + examination.health.notes.map(\.words) {
      #expect(!text.contains(secret), "a value of the records is in: \(text)")
    }
  }
}
