import Foundation
import Lazaret
import LazaretSupport
import SystemPackage
import TestSupport
import Testing

/// Notices in the languages of the catalogue.
struct NoticeTests {
  private func catalogue() throws -> [String: [String: Any]] {
    let json = try JSONSerialization.jsonObject(with: Data(Notice.stringCatalogue.utf8)) as? [String: Any]
    #expect(json?["sourceLanguage"] as? String == "en")
    return try #require(json?["strings"] as? [String: [String: Any]])
  }

  @Test func theCatalogueOfTheExamplesIsTheLibrarys() throws {
    let path = RealMaterial.projectRoot.appending("Examples/Notices.xcstrings")
    if ProcessInfo.processInfo.environment["LAZARET_RECORD"] == "1" {
      try Notice.stringCatalogue.write(toFile: path.string, atomically: true, encoding: .utf8)
    }
    #expect(try String(contentsOfFile: path.string, encoding: .utf8) == Notice.stringCatalogue)
  }

  @Test func everyKeyHasEveryLanguage() throws {
    let strings = try catalogue()
    #expect(strings.count > 40)
    for (key, entry) in strings {
      let languages = try #require(entry["localizations"] as? [String: Any])
      #expect(Set(languages.keys) == ["en", "de", "fr"], "\(key)")
    }
  }

  @Test func theUsersLanguageIsFound() {
    #expect(Notice.Language(preferred: ["nl-NL", "de-AT", "fr"]) == .german)
    #expect(Notice.Language(preferred: ["FR_ca"]) == .french)
    #expect(Notice.Language(preferred: ["nl", "pt-BR"]) == nil)
  }

  @Test func aNoticeIsTranslatedWithItsNumbers() async throws {
    let scene = try AppScene()
    try await scene.make(cars: 2000)
    try scene.damage()
    var store = try scene.store()
    store.policy.depth = .full
    let notice = try #require(try await store.open().notice)
    #expect(notice.key == "lazaret.notice.salvaged-with-losses")
    #expect(notice.cause == "damaged")
    #expect(notice.counts.recovered == Int64(try scene.names().count))
    #expect(notice.translated(into: .english) == notice)
    let german = notice.translated(into: .german)
    #expect(german.title == "Ihre Daten wurden teilweise wiederhergestellt")
    #expect(german.message.contains("Ihrer Daten wurde"))
    #expect(german.message.hasPrefix("Die Datei mit Ihren Daten war beschädigt"))
    #expect(german.actions.map(\.key) == notice.actions.map(\.key))
    #expect(german.actions.first?.title == "Fortfahren")
    #expect(notice.counts.lostPairs == 0 && !notice.counts.isPairEstimate && notice.counts.keptBeside == 0)
    #expect(german.key == notice.key && german.counts == notice.counts)
    #expect(notice.translated(into: .french).title == "Vos données ont été récupérées en partie")
  }

  @Test func nothingIsCountedBeforeTheSalvage() async throws {
    let scene = try AppScene()
    try scene.makeNonsense()
    var store = try scene.store()
    store.policy.whenDamaged = .salvageLater
    let salvage = try #require(try await store.open().salvage)
    #expect(!salvage.isLostExact && salvage.percent == nil && salvage.words == "It was not salvaged yet.")
  }

  @Test func everyActionThatIsOfferedHasWordsInTheCatalogue() async throws {
    let scene = try AppScene()
    try scene.makeNonsense()
    var store = try scene.store()
    store.policy.whenDamaged = .salvageLater
    let later = try #require(try await store.open().notice)
    #expect(later.key == "lazaret.notice.salvage-later")
    let consent = try await store.support.prepare(.facts).consent
    let strings = try catalogue()
    for notice in [later, consent] {
      #expect(strings["\(notice.key).title"] != nil, "\(notice.key)")
      for action in notice.actions { #expect(strings[action.key] != nil, "\(action.key)") }
      #expect(notice.translated(into: .german).message != notice.message)
    }
  }
}
