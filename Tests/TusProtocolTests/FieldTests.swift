import Platform
import Testing

@Suite struct FieldTests {
  @Test func metadataComesBack() {
    var metadata = UploadMetadata()
    metadata[UploadMetadata.fileName] = "Garage ü.tar.gz"
    metadata["empty"] = ""
    #expect(metadata.field == "empty,filename R2FyYWdlIMO8LnRhci5neg==")
    #expect(UploadMetadata(metadata.field) == metadata)
    #expect(UploadMetadata("")?.values.isEmpty == true)
  }

  @Test(arguments: ["a b c", "a !!!!", "a YQ", "a YQ==,a YQ==", ",", "a YQ==,", "ü YQ=="])
  func malformedMetadataIsRefused(_ field: String) { #expect(UploadMetadata(field) == nil) }

  @Test func longMetadataIsRefused() {
    #expect(UploadMetadata("a " + String(repeating: "YWFh", count: 3000)) == nil)
  }

  @Test func checksumsComeBack() {
    let checksum = UploadChecksum("SHA256 AAEC")
    #expect(checksum == UploadChecksum(algorithm: "sha256", sum: [0, 1, 2]))
    #expect(checksum?.field == "sha256 AAEC")
    #expect(UploadChecksum("sha256") == nil)
    #expect(UploadChecksum("sha256 AAE") == nil)
    #expect(UploadChecksum("sha256 AAF=") == nil)
  }
}
