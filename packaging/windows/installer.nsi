; The installer for Windows, for the current user: no administrator is asked for.
; makensis -DVERSION=0.1.0 -DTREE=FOLDER -DOUT=FILE.exe installer.nsi (packaging/build.py exe does it)
Unicode true
SetCompressor /SOLID lzma
!include "MUI2.nsh"
!include "FileFunc.nsh"

!define NAME "Contrastive Explorer"
!define ID "ContrastiveExplorer"
!define REMOVAL "Software\Microsoft\Windows\CurrentVersion\Uninstall\${ID}"

Name "${NAME}"
OutFile "${OUT}"
InstallDir "$LOCALAPPDATA\Programs\${ID}"
RequestExecutionLevel user
VIProductVersion "${VERSION}.0"
VIAddVersionKey "ProductName" "${NAME}"
VIAddVersionKey "FileDescription" "${NAME} installer"
VIAddVersionKey "FileVersion" "${VERSION}"
VIAddVersionKey "LegalCopyright" "MIT license"

!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

Section "Install"
  SetOutPath "$INSTDIR"
  File /r "${TREE}\*.*"
  CreateShortcut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\python\pythonw.exe" '-P "$INSTDIR\contrastive-explorer.pyw"'
  WriteUninstaller "$INSTDIR\uninstall.exe"
  ${GetSize} "$INSTDIR" "/S=0K" $0 $1 $2
  WriteRegStr HKCU "${REMOVAL}" "DisplayName" "${NAME}"
  WriteRegStr HKCU "${REMOVAL}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${REMOVAL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegDWORD HKCU "${REMOVAL}" "EstimatedSize" $0
  WriteRegDWORD HKCU "${REMOVAL}" "NoModify" 1
SectionEnd

Section "Uninstall"
  ; Runs and settings are elsewhere, and stay.
  RMDir /r "$INSTDIR\python"
  RMDir /r "$INSTDIR\packages"
  Delete "$INSTDIR\*.pyw"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\${NAME}.lnk"
  DeleteRegKey HKCU "${REMOVAL}"
SectionEnd
